"""A file that was put into a folder is found there again after a power cut."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names in the folder durable; what the files hold is synced through them."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
