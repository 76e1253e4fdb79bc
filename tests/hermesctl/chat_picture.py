"""Makes docs/pictures/chat.svg: a real chat with the real service and a scripted model, in a terminal.

python -m tests.hermesctl.chat_picture
"""

import io
import json
import re
import tempfile
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from tests.fake_model import FakeModel
from tests.hermesctl.hand import ROOT
from tests.hermesctl.terminal import Terminal, hermesctl_in
from tests.service import Service, settings_for

PICTURE = ROOT / "docs" / "pictures" / "chat.svg"
COLUMNS, ROWS = 84, 36
ANSWER = """\
It is a **prime**. Checked by trial division up to 9, the whole part of its square root:

```python
all(97 % n for n in range(2, 10))   # True
```

| divisor | rest |
| --- | --- |
| 2 | 1 |
| 3 | 1 |
| 7 | 6 |
"""
REASON = """\
Because every number one reaches has another behind it: counting is a walk **without a last step**, and \
infinity is the name of that, not of a number at the end of it."""
COLOURS = TerminalTheme(
    (24, 26, 31), (214, 217, 224),
    [(36, 39, 46), (224, 108, 117), (126, 190, 121), (229, 192, 123),
     (97, 175, 239), (198, 120, 221), (86, 182, 194), (171, 178, 191)],
    [(92, 99, 112), (240, 128, 137), (152, 208, 146), (240, 208, 150),
     (130, 195, 250), (214, 146, 234), (112, 200, 212), (255, 255, 255)],
)  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, FakeModel() as model:
        settings = settings_for(model, workers="count = 1")
        with Service(Path(folder) / "home", settings) as service:
            terminal = hermesctl_in(service.home, "chat", "demo", columns=COLUMNS, rows=ROWS)
            with terminal:
                _talk(terminal, model)
                picture = _svg(terminal)
                terminal.press("ctrl-d")
                terminal.ends()
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture)


def _talk(terminal: Terminal, model: FakeModel) -> None:
    terminal.shows("say something")
    call = {"name": "shell", "arguments": {"command": "factor 97"}}
    model.set_mode("tools", calls=json.dumps([call]), text=ANSWER)
    terminal.say("Is 97 a prime?")
    terminal.shows("divisor", "tokens")
    call = {"name": "shell", "arguments": {"command": "yes | sha256sum"}}
    model.set_mode("tools", calls=json.dumps([call]))
    terminal.say("And now count to infinity.")
    terminal.shows("shell is running")
    terminal.press("escape")
    terminal.shows("none left")
    model.set_mode("slow", interval=0.2, text=REASON)
    terminal.say("Never mind. Why can nobody?")
    terminal.shows("answering", "counting is")
    terminal.say("/busy queue")
    terminal.shows("queue when busy")
    terminal.say("And who tried?")
    terminal.shows("1 And who tried?", "accepted, waits")


def _svg(terminal: Terminal) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for row in terminal.cells:
        line = Text()
        for cell in row:
            line.append(cell.data, _style(cell.fg, cell.bold, cell.italics))
        console.print(line, no_wrap=True, overflow="crop")
    drawn = console.export_svg(title="hermesctl chat demo", theme=COLOURS, unique_id="chat")
    # The picture stands alone: it asks nobody for a font.
    return re.sub(r"@font-face \{.*?\}|<!--.*?-->", "", drawn, flags=re.DOTALL)


def _style(colour: str, bold: bool, italic: bool) -> Style:
    names = {"default": None, "brown": "yellow", "brightbrown": "bright_yellow"}
    name = names.get(colour, colour.replace("bright", "bright_"))
    return Style(color=name, bold=bold, italic=italic)


if __name__ == "__main__":
    main()
