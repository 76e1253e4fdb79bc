"""What is counted agrees with what happened, and Prometheus can read it."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.fake_model import FakeModel
from tests.house_rules import ROOT
from tests.service import Service, settings_for
from tests.waiting import until


def read(text: str) -> dict[str, float]:
    """Every sample by its name and labels, as Prometheus' own parser finds it."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


def counted(service: Service) -> dict[str, float]:
    return read("".join(row["text"] for row in service.show("metrics")))


def test_turns_interrupts_and_refusals_are_counted_with_their_times(service: Service) -> None:
    listener = service.listen("demo")
    service.say("demo", "hello")
    listener.ending("demo/1")
    service.say("demo", "[[silent]] wait")
    until(lambda: service.status()["running"] == 1)
    service.say("demo", "something else")
    listener.ending("demo/3")
    assert service.hermesctl("send", " a bad name ", "hello").returncode == 5
    found = counted(service)
    assert found["hermes_messages_accepted_total{kind=text}"] == 3
    assert found["hermes_messages_accepted_total{kind=voice}"] == 0
    assert found["hermes_messages_refused_total"] == 1
    assert found["hermes_turns_total{outcome=done}"] == 2
    assert found["hermes_turns_total{outcome=interrupted}"] == 1
    assert found["hermes_turns_total{outcome=failed}"] == 0
    assert found["hermes_turn_seconds_count"] == 3
    assert found["hermes_interrupts_total"] == 1
    assert found["hermes_interrupt_proof_seconds_count"] == 1
    assert found["hermes_interrupt_next_seconds_count"] == 1
    assert 0 < found["hermes_interrupt_proof_seconds_sum"] <= found["hermes_interrupt_next_seconds_sum"] < 30
    assert found["hermes_interrupt_survivors_total"] == 0
    assert found["hermes_worker_deaths_total{reason=interrupt}"] == 1
    assert found["hermes_worker_starts_total"] == 4
    assert found["hermes_commit_seconds_count"] == found["hermes_commit_records_count"] > 0
    assert found["hermes_tokens_total{direction=out,model=fake}"] > 0
    assert found["hermes_seats_busy_max"] == 2
    assert found["hermes_starts_total"] == 1
    assert found["hermes_model_ready"] == 1
    assert found["hermes_journal_bytes"] > 4096
    assert 10_000_000 < found["hermes_memory_bytes"] < 500_000_000
    totals = service.status()["totals"]
    assert totals == {
        "messages": 3,
        "turns_done": 2,
        "turns_failed": 0,
        "turns_interrupted": 1,
        "interrupts": 1,
        "restarts": 0,
    }


def test_tokens_cost_what_the_settings_say_and_failures_are_told_apart(
    tmp_path: Path, model: FakeModel
) -> None:
    prices = "[model]\nprice_in = 1_000_000\nprice_out = 1_000_000"
    with Service(tmp_path / "home", settings_for(model).replace("[model]", prices)) as service:
        assert service.hermesctl("send", "demo", "hello").returncode == 0
        model.set_mode("401")
        assert service.hermesctl("send", "demo", "hello").returncode == 4
        found = counted(service)
        tokens = sum(value for name, value in found.items() if name.startswith("hermes_tokens_total"))
        assert tokens > 0
        assert found["hermes_cost_total{model=fake}"] == tokens
        assert found["hermes_turns_total{outcome=failed}"] == 1
        service.stop()
        service.start()
        assert service.status()["totals"] == dict.fromkeys(service.status()["totals"], 0) | {"restarts": 1}


def test_what_is_printed_is_what_is_documented_and_what_json_says(service: Service) -> None:
    printed = service.hermesctl("metrics")
    assert printed.returncode == 0
    document = (ROOT / "docs/metrics.md").read_text()
    rows = re.findall(r"^\| `(hermes_\w+)` \| (\w+) \|", document, re.MULTILINE)
    assert set(re.findall(r"^# TYPE (\S+) (\S+)$", printed.stdout, re.MULTILINE)) == set(rows)
    assert len(rows) == len(set(rows))
    names = {name.partition("{")[0] for name in read(printed.stdout)}
    watched = re.findall(r"hermes_\w+", document[document.index("```yaml") :])
    assert watched
    assert set(watched) <= names
    samples = json.loads(service.hermesctl("metrics", "--json").stdout)
    assert {sample["name"] for sample in samples} == names


def test_the_probe_of_the_loop_goes_on(service: Service) -> None:
    until(lambda: counted(service)["hermes_loop_lag_seconds_count"] >= 2)
