"""The rules, told as stories and in a few short tests where a story would be clumsy."""
