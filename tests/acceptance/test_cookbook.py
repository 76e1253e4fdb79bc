"""The recipes of docs/cookbook.md that need nothing but this project; tests/agents_real has the others."""

from pathlib import Path

import pytest

from tests.cookbook import Recipe, recipe, titles
from tests.fake_model import FakeModel
from tests.service import VOICELESS, Service

ADDRESS = "http://127.0.0.1:8000/v1"


@pytest.fixture
def srv(tmp_path: Path) -> Path:
    """In the place of /srv; cells see it."""
    folder = tmp_path / "srv"
    folder.mkdir()
    return folder


def cook(made: Recipe, home: Path) -> None:
    """Writes the files and the settings, starts the service and runs the commands."""
    home.mkdir(exist_ok=True)
    for name, content in made.files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        file.chmod(0o755)
    with Service(home, f"{made.settings}\n[stt]\n{VOICELESS}\n[workers]\ncount = 1\n") as service:
        made.play(service)


def shell(command: str) -> list[dict[str, object]]:
    return [{"name": "shell", "arguments": {"command": command}}]


def test_a_support_bot_asks_before_it_refunds(tmp_path: Path, srv: Path, model: FakeModel) -> None:
    made = recipe("A support bot whose refunds a person approves").replaced(
        (ADDRESS, model.base_url), ("/srv/", f"{srv}/")
    )
    rounds = [shell(f"{srv}/shop/order 17"), shell(f"{srv}/shop/refund 17")]
    model.set_mode("tools", calls=rounds, text="I have refunded it.")
    cook(made, tmp_path / "home")
    results = [str(each["content"]) for each in model.requests()[-1].messages if each["role"] == "tool"]
    assert any("one lamp" in result for result in results)
    assert "refunded order 17" in results[-1]


def test_a_function_of_your_own_asks(tmp_path: Path) -> None:
    cook(recipe("A function of your own"), tmp_path / "home")


def test_every_recipe_is_run() -> None:
    own = (Path(__file__), Path(__file__).parents[1] / "agents_real" / "test_cookbook_agents.py")
    tests = "".join(file.read_text() for file in own)
    assert [title for title in titles() if f'"{title}"' not in tests] == []
