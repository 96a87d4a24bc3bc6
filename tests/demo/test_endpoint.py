"""Which model is asked follows from the environment."""

import pytest

from reattach.demo.model.endpoint import BadSetting, from_environment


def chosen(**env: str) -> tuple[str, str] | None:
    """Address and protocol."""
    endpoint = from_environment(env)
    return None if endpoint is None else (endpoint.url, endpoint.dialect.name)


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, None),
        ({"OPENAI_API_KEY": "", "OPENAI_BASE_URL": " "}, None),
        ({"OPENAI_API_KEY": "k", "REATTACH_DEMO_API": "data"}, None),
        ({"REATTACH_DEMO_API": "chat"}, None),
        ({"OPENAI_API_KEY": "k"}, ("https://api.openai.com/v1/responses", "responses")),
        ({"OPENAI_API_KEY": "k", "REATTACH_DEMO_API": "chat"}, ("https://api.openai.com/v1/chat/completions", "chat")),
        ({"OPENAI_BASE_URL": "http://localhost:11434/v1"}, ("http://localhost:11434/v1/chat/completions", "chat")),
        ({"OPENAI_BASE_URL": "http://localhost:11434/v1/"}, ("http://localhost:11434/v1/chat/completions", "chat")),
        ({"OPENAI_BASE_URL": "https://x.openai.azure.com/openai/v1"}, ("https://x.openai.azure.com/openai/v1/responses", "responses")),
        ({"OPENAI_BASE_URL": "https://notopenai.com/v1"}, ("https://notopenai.com/v1/chat/completions", "chat")),
        (
            {"OPENAI_BASE_URL": "https://api.openai.com.evil.example/v1"},
            ("https://api.openai.com.evil.example/v1/chat/completions", "chat"),
        ),
        ({"OPENAI_BASE_URL": "https://api.anthropic.com/v1"}, ("https://api.anthropic.com/v1/messages", "messages")),
        ({"OPENAI_BASE_URL": "http://[::1]:1/v1", "REATTACH_DEMO_API": "messages"}, ("http://[::1]:1/v1/messages", "messages")),
    ],
)
def test_the_endpoint(env: dict[str, str], expected: tuple[str, str] | None) -> None:
    """Key or address mean a model; its protocol follows from the host unless it is named."""
    assert chosen(**env) == expected


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"REATTACH_DEMO_API": "soap"}, "responses, chat, messages, data"),
        ({"OPENAI_BASE_URL": "localhost:11434/v1"}, "http://localhost:11434/v1"),
        ({"OPENAI_BASE_URL": "ftp://x/v1"}, "http or https"),
        ({"OPENAI_BASE_URL": "http://"}, "http or https"),
        ({"OPENAI_BASE_URL": "http://host:port/v1"}, "http or https"),
        ({"OPENAI_BASE_URL": "http://host:99999/v1"}, "http or https"),
        ({"OPENAI_API_KEY": "sk-1\nX-Evil: 1"}, "cannot be in a header"),
        ({"OPENAI_API_KEY": "k", "REATTACH_DEMO_TIMEOUT": "0"}, "REATTACH_DEMO_TIMEOUT"),
        ({"OPENAI_API_KEY": "k", "REATTACH_DEMO_TIMEOUT": "nan"}, "REATTACH_DEMO_TIMEOUT"),
    ],
)
def test_a_value_of_no_use(env: dict[str, str], says: str) -> None:
    """A wrong value is refused with what would be right, and never shown when it may be a secret."""
    with pytest.raises(BadSetting) as caught:
        from_environment(env)
    assert says in str(caught.value) and "sk-1" not in str(caught.value)


def test_an_endpoint_does_not_show_its_key() -> None:
    """Printing one, as a debugger or a log may do, shows no key."""
    endpoint = from_environment({"OPENAI_API_KEY": "sk-secret"})
    assert endpoint is not None and "secret" not in repr(endpoint) and "secret" not in str(endpoint)
