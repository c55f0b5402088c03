# SPDX-License-Identifier: Apache-2.0
"""A check that the programs of this folder share."""


def refused(kind, words, function, *arguments, **options):
    """Calls a function that must raise an exception of this kind with these words."""
    try:
        function(*arguments, **options)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"{words} was not refused")
