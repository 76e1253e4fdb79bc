"""`python -m hermesctl.model_hub REPOSITORY REVISION FOLDER FILE...`: files of the model hub."""

import sys
from importlib import import_module
from pathlib import Path

# A file in the folder of the download that marks the start of the hub's requests.
ASKING = "asking"


def main() -> None:
    """An error ends the process with its traceback, whose last line names the fault."""
    repository, revision, folder, *names = sys.argv[1:]
    library = import_module("huggingface_hub")
    # From here on the wait is for the hub, and no longer for this machine.
    Path(folder, ASKING).touch()
    for name in names:
        library.hf_hub_download(repository, name, revision=revision, local_dir=folder)


if __name__ == "__main__":
    main()
