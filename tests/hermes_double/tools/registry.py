"""The names of the tools."""


class Registry:
    def get_all_tool_names(self) -> list[str]:
        return ["touch", "remove", "clarify"]


registry = Registry()
