"""What endangers the host is denied before all rules."""

import os
from typing import Any

import pytest

from worker.host_danger import danger
from worker.rules import Rules


def line(command: str, **others: Any) -> dict[str, Any]:
    return {"command": command, **others}


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -fr / --no-preserve-root",
        "sudo rm -r -f /*",
        "true && rm --recursive ~",
        "rm -rf ~/",
        "rm -rf $HOME",
        'rm -rf "${HOME}"/*',
        "rm -rf /tmp/..",
        "rm -rf //",
        "echo $(rm -rf /)",
        "bash -c 'rm -rf /'",
        "bash -lc 'rm -rf /'",
        "dd if=/dev/zero of=/dev/sda",
        "cat x > /dev/nvme0n1",
        "cat x | tee /dev/vda1",
        "cp x /dev/mapper/root",
        "mkfs.ext4 image",
        "/sbin/mkfs -t ext4 x",
        "wipefs -a x",
        "shutdown -h now",
        "sudo systemctl poweroff",
        "systemctl --force reboot",
        "init 0",
        "init 6",
        "telinit 6",
        "reboot",
        "halt",
        "rm -Rf /",
        "bash -c 'true; rm -rf /'",
        'zsh -c "true; rm -rf /"',
        "LANG=C rm -rf /",
        "if true; then reboot; fi",
        "if true; then true; else reboot; fi",
        "for x in a b; do rm -rf /; done",
        "tee -a /dev/disk/by-id/x",
        "mv x /dev/mmcblk0",
        "mv x //dev/mmcblk0",
        "install x /dev/hda",
        "shred /dev/sda",
        "truncate -s 0 /dev/loop0",
        "badblocks -w /dev/dm-0",
        "cat x >> '/dev/xvda'",
        "cat x > //dev/sda",
        "cat x >/dev/./sda1; true",
        "cat x >& /dev/../dev/sda",
        *(
            f"{program} x"
            for program in (
                "mke2fs",
                "mkswap",
                "mkdosfs",
                "wipefs",
                "blkdiscard",
                "fdisk",
                "sfdisk",
                "cfdisk",
                "sgdisk",
                "gdisk",
                "parted",
            )
        ),
        *(
            f"{wrapper} rm -rf /"
            for wrapper in (
                "sudo",
                "doas",
                "env",
                "nohup",
                "nice",
                "ionice",
                "time",
                "exec",
                "command",
                "setsid",
                "busybox",
            )
        ),
    ],
)
def test_what_endangers_the_host_is_denied_before_all_rules(command: str) -> None:
    assert danger("shell", line(command))
    assert Rules(allow=["shell", "*"]).decide("shell", line(command)) == "deny"
    assert Rules(allow=["*"]).decide("execute", line(command)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "rm -rf ~/build",
        "rm -rf ~/{a,b}",
        "rm -rf /tmp/x",
        "rm /",
        "rm --force /",
        "dd if=/dev/sda of=image",
        "echo shutdown",
        "git commit -m 'reboot'",
        "ls /dev/sda",
        "cat x > /dev/null",
        "cat x > /dev/sda_image",
        "cat x > /tmp/dev/sda",
        "systemctl status",
    ],
)
def test_what_is_like_it_is_left_to_the_rules(command: str) -> None:
    assert danger("shell", line(command)) == ""


def test_a_folder_and_a_device_of_other_arguments_count() -> None:
    assert danger("shell", line("rm -rf *", folder="/"))
    assert danger("terminal", line("rm -rf *", workdir="/"))
    assert danger("shell", line("bash -c 'rm -rf *'", folder="/"))
    assert danger("shell", line("rm -rf .", folder=os.path.expanduser("~")))
    assert danger("write", {"path": "/dev/sdb", "content": ""})
    for tool in ("write", "edit", "write_file", "patch"):
        for name in ("path", "file_path", "filePath"):
            assert danger(tool, {name: "/dev/../dev/sdb1"}) == "it writes to a block device"
    assert danger("read", {"path": "/dev/sdb"}) == ""
