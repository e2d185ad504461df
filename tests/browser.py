"""A page in headless Chromium, spoken to through a pipe: what it answers, says and asks for."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WORDS = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic")
WORDS += ("--no-first-run", "--disable-background-networking", "--remote-debugging-pipe")
TOLD = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")


class Browser:
    """messages: those of the page on the console; requests: addresses it requested. DevTools reads
    commands from file 3 and writes to file 4, each message ended by a zero byte."""

    def __init__(self, to: int, back: int) -> None:
        self.to, self.back = to, back
        self.rest, self.sent, self.session = b"", 0, ""
        self.messages: list[dict[str, Any]] = []
        self.requests: list[str] = []

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 16)
            assert more, "Chromium has ended"
            self.rest += more
        packet, _, self.rest = self.rest.partition(b"\0")
        message: dict[str, Any] = json.loads(packet)
        if message.get("method") in TOLD:
            self.messages.append(message["params"])
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.sent += 1
        message: dict[str, Any] = {"id": self.sent, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self.sent:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: Path) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=page.as_uri())
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def value(self, script: str) -> Any:
        """Of a script that is run in the page; waited for where it is a promise."""
        reply = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    (read_to, to), (back, write_back) = os.pipe(), os.pipe()
    shell = f'exec "$@" 3<&{read_to} 4>&{write_back}'
    process = subprocess.Popen(
        ["bash", "-c", shell, "bash", *WORDS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(read_to, write_back),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(read_to)
    os.close(write_back)
    try:
        opened = Browser(to, back)
        yield opened
        opened.session = ""
        opened.call("Browser.close")
        process.wait(timeout=60)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(back)
