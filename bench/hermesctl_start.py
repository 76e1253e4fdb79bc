"""How fast hermesctl starts, side by side with a bare interpreter that imports zmq; read the ratios."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.hermesctl.peer import opened, tables  # noqa: E402

ROUNDS = 40
STATUS = {"state": "ready", "version": "0", "pid": 1, "uptime_seconds": 1.0, "memory_bytes": 1}


def spent_ms(line: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, *line], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begin) * 1000


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as home, opened(Path(home), tables(status=[STATUS])):
        ours = ["-m", "hermesctl", "--home", home]
        lines = {
            "python, nothing imported": ["-c", "pass"],
            "python -c 'import zmq'": ["-c", "import zmq"],
            "hermesctl version": [*ours, "version"],
            "hermesctl status": [*ours, "status"],
            "hermesctl status --json": [*ours, "status", "--json"],
        }
        times: dict[str, list[float]] = {name: [] for name in lines}
        for _ in range(rounds):
            for name, line in lines.items():
                times[name].append(spent_ms(line))
    bare = statistics.median(times["python -c 'import zmq'"])
    print(f"{'':26} {'p50 ms':>8} {'p99 ms':>8} {'ratio':>6}")
    for name, values in times.items():
        p50 = statistics.median(values)
        print(f"{name:26} {p50:8.1f} {percentile(values, 0.99):8.1f} {p50 / bare:6.2f}")


if __name__ == "__main__":
    main()
