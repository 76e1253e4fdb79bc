"""Ends a tree of processes as others end a task: one framework a run, in an interpreter that has it.

`PYTHON bench/rivals.py NAME TREE UP`: the framework runs the program TREE, which makes the file UP when all
of it is there, and is then told to end it at once. Prints the version and the milliseconds until the
framework says that it is done; then the framework itself is shut down. Imports nothing of ours.
"""

import asyncio
import contextlib
import importlib
import importlib.metadata
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Frameworks take seconds to start on a busy machine.
_SECONDS_MAX = 60.0
# A kill that takes longer than this is not waited for.
_KILL_SECONDS_MAX = 10.0
_TREE = "BENCH_TREE"
# Begins the line with the outcome: frameworks write lines of their own.
TOLD = "rival: "


def await_file(up: Path) -> None:
    deadline = time.monotonic() + _SECONDS_MAX
    while not up.exists():
        if time.monotonic() > deadline:
            raise SystemExit("the tree did not come up")
        time.sleep(0.01)


def celery_app(folder: str) -> Any:
    queues = {"data_folder_in": folder, "data_folder_out": folder, "control_folder": f"{folder}/control"}
    app = importlib.import_module("celery").Celery(
        "rivals", broker="filesystem://", backend=f"file://{folder}"
    )
    app.conf.update(broker_transport_options=queues, worker_hijack_root_logger=False)

    @app.task(name="tree")  # type: ignore[untyped-decorator]
    def tree(path: str) -> None:
        runpy.run_path(path)
        signal.pause()

    return app


def celery(tree: Path, up: Path) -> float:
    """`revoke(terminate=True, signal="SIGKILL")`, to a prefork pool."""
    with tempfile.TemporaryDirectory() as folder:
        worker = subprocess.Popen(
            [sys.executable, __file__, "celery-worker", folder], stderr=subprocess.DEVNULL
        )
        app = celery_app(folder)
        task = app.send_task("tree", [str(tree)])
        await_file(up)
        began = time.perf_counter()
        task.revoke(terminate=True, signal="SIGKILL")
        task.get(timeout=_SECONDS_MAX, propagate=False)
        spent = time.perf_counter() - began
        worker.terminate()
        worker.wait(_SECONDS_MAX)
    return spent


def celery_worker(folder: str) -> None:
    celery_app(folder).worker_main(["worker", "--pool=prefork", "--concurrency=1", "--loglevel=ERROR"])


def circus(tree: Path, up: Path) -> float:
    """`stop` of the watcher, with `stop_children` and SIGKILL."""
    with tempfile.TemporaryDirectory() as folder:
        endpoint, settings = f"ipc://{folder}/control", Path(folder, "circus.ini")
        program = Path(folder, "program.py")
        program.write_text(f"import runpy, signal; runpy.run_path({str(tree)!r}); signal.pause()")
        settings.write_text(
            f"[circus]\nendpoint = {endpoint}\npubsub_endpoint = ipc://{folder}/events\n"
            f"[watcher:tree]\ncmd = {sys.executable} {program}\ncopy_env = True\n"
            "stop_children = True\nstop_signal = KILL\n"
        )
        daemon = subprocess.Popen(
            [sys.executable, "-m", "circus.circusd", str(settings)], stderr=subprocess.DEVNULL
        )
        await_file(up)
        client = importlib.import_module("circus.client").CircusClient(
            endpoint=endpoint, timeout=_SECONDS_MAX
        )
        began = time.perf_counter()
        client.send_message("stop", name="tree", waiting=True)
        spent = time.perf_counter() - began
        client.send_message("quit")
        client.stop()
        daemon.wait(_SECONDS_MAX)
    return spent


def jupyter_client(tree: Path, up: Path) -> float:
    """`shutdown_kernel(now=True)`."""
    kernel = importlib.import_module("jupyter_client").KernelManager()
    kernel.start_kernel()
    client = kernel.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=_SECONDS_MAX)
    client.execute(f"import runpy, signal; runpy.run_path({str(tree)!r}); signal.pause()")
    await_file(up)
    began = time.perf_counter()
    kernel.shutdown_kernel(now=True)
    spent = time.perf_counter() - began
    client.stop_channels()
    return spent


def livekit_start(process: object) -> None:
    """In the job's process: the tree is what its set-up has left running."""
    runpy.run_path(os.environ[_TREE])


async def livekit_job(context: object) -> None:
    """Never reached: no room is joined."""


def livekit_agents(tree: Path, up: Path) -> float:
    """`kill()` of the job's process."""
    os.environ[_TREE] = str(tree)
    # Not asyncio.run: that would wait for the framework, and the framework waits for the survivors.
    return asyncio.new_event_loop().run_until_complete(_livekit(up))


async def _livekit(up: Path) -> float:
    executor = importlib.import_module("livekit.agents.ipc.job_proc_executor").ProcJobExecutor(
        initialize_process_fnc=livekit_start,
        job_entrypoint_fnc=livekit_job,
        session_end_fnc=None,
        simulation_end_fnc=None,
        inference_executor=None,
        initialize_timeout=_SECONDS_MAX,
        close_timeout=_SECONDS_MAX,
        session_end_timeout=_SECONDS_MAX,
        memory_warn_mb=0,
        memory_limit_mb=0,
        ping_interval=2.5,
        ping_timeout=_SECONDS_MAX,
        high_ping_threshold=_SECONDS_MAX,
        http_proxy=None,
        mp_ctx=multiprocessing.get_context("spawn"),
        loop=asyncio.get_running_loop(),
    )
    await executor.start()
    await executor.initialize()
    await asyncio.to_thread(await_file, up)
    began = time.perf_counter()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(executor.kill(), _KILL_SECONDS_MAX)
    return time.perf_counter() - began


RIVALS: dict[str, Callable[[Path, Path], float]] = {
    "livekit-agents": livekit_agents,
    "celery": celery,
    "circus": circus,
    "jupyter_client": jupyter_client,
}


def main(name: str, *rest: str) -> None:
    if name == "celery-worker":
        celery_worker(*rest)
        return
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        raise SystemExit(f"not installed: pip install {name}") from None
    spent = RIVALS[name](*map(Path, rest))
    print(f"{TOLD}{version} {spent * 1000:.1f}", flush=True)
    # Whatever the framework still waits for, it was given its time.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
