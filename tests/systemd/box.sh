#!/bin/sh
# Becomes the first process of a small machine: this machine's files under a throw-away layer, a systemd of its own.
# Called in fresh namespaces with an empty folder; whatever is written in the box is gone with it.
set -eu
top=$1/top
mount -t tmpfs none "$1"
mkdir "$1/layer" "$1/work" "$top"
mount -t overlay none -o "lowerdir=/,upperdir=$1/layer,workdir=$1/work" "$top"
cd "$top"
mount -t proc none proc
mount -t sysfs none sys
mount -t cgroup2 none sys/fs/cgroup
mount -t tmpfs -o mode=755 none run
# A /dev of its own: systemd sets rights there, and the machine's must stay as they are.
mount -t tmpfs -o mode=755 none dev
for node in null zero full random urandom tty; do
  touch "dev/$node"
  mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 none dev/pts
mount -t tmpfs none dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
# Units that would reach out of the box: kernel settings, modules, clocks and disks belong to the whole machine;
# and the one that empties /tmp at boot, where these very files may lie.
for unit in systemd-sysctl.service systemd-modules-load.service systemd-binfmt.service systemd-random-seed.service \
  systemd-remount-fs.service systemd-tmpfiles-setup.service systemd-tmpfiles-setup-dev.service systemd-update-utmp.service systemd-udevd.service \
  systemd-udev-trigger.service systemd-timesyncd.service systemd-journald-audit.socket timers.target swap.target \
  tmp.mount dev-hugepages.mount dev-mqueue.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
  sys-fs-fuse-connections.mount proc-sys-fs-binfmt_misc.automount local-fs.target cryptsetup.target; do
  ln -sf /dev/null "etc/systemd/system/$unit"
done
# What the machine itself has mounted elsewhere is not under the layer: such folders are brought in, to be read.
shift
for folder; do
  mkdir -p "./$folder"
  mount --bind "$folder" "./$folder"
  mount -o remount,bind,ro "./$folder"
done
mkdir -p old
pivot_root . old
umount -l old
# As on a real machine; without it what systemd mounts for a service (credentials) does not reach the service.
mount --make-rshared /
exec env -i container=box PATH="$PATH" /lib/systemd/systemd --system --log-target=journal --unit=basic.target
