"""`serve`: the page at an address of this machine, until it is interrupted. Says where it is, and what an open address asks for."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
import secrets
import socket
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from kernelwright.core.errors import ConfigError
from kernelwright.core.folders import data_folder
from kernelwright.store import Store
from kernelwright.web.app import TITLE, create_app

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
SHORTEST_TOKEN = 16


def serve(
    *,
    host: str,
    port: int,
    place: str,
    model: str,
    reports: Sequence[Path],
    allowed: Sequence[str],
    abreast: int,
    say: Callable[[str], None],
    run: str | None = None,
) -> None:
    """Serve until interrupted. An address other than loopback gets a token: $KERNELWRIGHT_TOKEN, else one made now. `run` is the one
    whose address is told; where a page of ours is served here already, that is all there is to do."""
    open_to_others = not _loopback(host)
    token = _token() if open_to_others else ""
    path = ""
    if run:
        with Store.open(place or None) as store:
            path = f"run/{store.load_run(run).id}"
    if port and not open_to_others and _ours(port):
        say(f"http://127.0.0.1:{port}/{path}")
        return
    bound = _bind(host, port)
    port = bound.getsockname()[1]
    hosts = {*LOOPBACK_NAMES, *(name.lower() for name in allowed)}
    if open_to_others:
        hosts |= {socket.gethostname().lower(), socket.getfqdn().lower(), *_addresses(host)}
    with Store.open(place or None) as store:
        app = create_app(
            store,
            place=place,
            folder=data_folder("web"),
            reports=reports,
            hosts=hosts,
            token=token,
            model=model,
            abreast=abreast,
        )
        shown = "127.0.0.1" if not open_to_others else socket.gethostname() if host in ("0.0.0.0", "::") else host
        shown = f"[{shown}]" if ":" in shown else shown
        say(f"http://{shown}:{port}/{path}" + (f"#token={token}" if token else ""))
        if open_to_others:
            say(
                f"anybody who reaches {host}:{port} and has this token can run code in this machine's sandbox and read the store; "
                "it is not encrypted: put a server with TLS in front"
            )
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1, lifespan="on",
            h11_max_incomplete_event_size=64 << 10,
        )  # fmt: skip
        asyncio.run(uvicorn.Server(config).serve(sockets=[bound]))


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(128)  # before its address is told: who follows it at once waits, and is not refused
    except (OSError, OverflowError) as error:
        bound.close()
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(
            f"cannot listen at {host}:{port}: {reason}; choose another with --port (0: any that is free)"
        ) from error
    return bound


def _ours(port: int) -> bool:
    """Whether somebody serves this page there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/openapi.json", timeout=2) as answer:
            return bool(json.load(answer)["info"]["title"] == TITLE)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token() -> str:
    given = os.environ.get("KERNELWRIGHT_TOKEN", "")
    if given and (len(given) < SHORTEST_TOKEN or not given.isascii() or not given.isalnum()):
        raise ConfigError(f"KERNELWRIGHT_TOKEN must be at least {SHORTEST_TOKEN} letters and digits")
    return given or secrets.token_hex(24)


def _addresses(host: str) -> set[str]:
    """The numbers by which this machine may be called: the one that was asked for, or all of its own."""
    if host not in ("0.0.0.0", "::"):
        return {host.lower()}
    import psutil  # type: ignore[import-untyped]

    return {entry.address.partition("%")[0].lower() for entries in psutil.net_if_addrs().values() for entry in entries}
