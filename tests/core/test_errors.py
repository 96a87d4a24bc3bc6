"""The error tree."""

import re

import reattach.core.errors as errors
from reattach.core.errors import ReattachError, StoreUnavailable, every_error


def test_the_drawing_shows_every_error() -> None:
    """The tree in the module's docstring has each of its classes once, with status and code; a layer may have refinements of its own."""
    drawn = re.findall(r"[├└]── (\w+)\s+(\d{3}) (\w+)", errors.__doc__ or "")
    groups = {"ReattachError", "CursorError", "WorkError"}
    here = [cls for cls in every_error() if cls.__module__ == errors.__name__ and cls.__name__ not in groups]
    assert {(cls.__name__, str(cls.status), cls.code) for cls in here} == set(drawn)


def test_codes_are_unique_and_titles_are_sentences() -> None:
    """A code names one kind of failure; its title is the first line of the class's docstring."""
    tree = every_error()
    leaves = [cls for cls in tree if not set(cls.__subclasses__()) & set(tree)]
    assert len({cls.code for cls in leaves}) == len(leaves)
    for cls in tree:
        assert re.fullmatch(r"[A-Z].*\.", cls.title()), cls
        assert issubclass(cls, ReattachError) and 400 <= cls.status < 600


def test_an_error_says_what_it_is_given_or_its_title() -> None:
    """The detail is for a person; the rest are members of the problem document."""
    assert str(StoreUnavailable()) == StoreUnavailable.title()
    error = StoreUnavailable("redis is loading", retry_after=2, reason="loading")
    assert (error.detail, error.retry_after, error.extra, error.retryable) == ("redis is loading", 2, {"reason": "loading"}, True)
