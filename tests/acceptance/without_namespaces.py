"""`python -m tests.acceptance.without_namespaces`: the supervisor on a kernel that gives it no namespaces."""

import errno

import pyseccomp

from supervisor import entry

if __name__ == "__main__":
    calls = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    calls.add_rule(pyseccomp.ERRNO(errno.EPERM), "unshare")
    calls.load()
    entry.main()
