"""What the Python scripts of this folder do alike: read their words, listen, say where, and serve."""

import json
import socket
import sys

import uvicorn


def port_and_options() -> tuple[int, dict]:
    """The words `PORT [OPTIONS]`, of which the second is a JSON object."""
    script, *words = sys.argv
    if len(words) not in (1, 2) or not words[0].isdigit():
        sys.exit(f"usage: {script} PORT [OPTIONS]")
    return int(words[0]), json.loads(words[1]) if len(words) == 2 else {}


def listen(port: int) -> tuple[socket.socket, str]:
    """A socket on loopback and its origin. The kernel queues connections from here on, so it may be
    announced. Port 0 lets the system choose."""
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


async def serve(app, listener: socket.socket, announced: str, lifespan: str = "on") -> None:
    """Prints what is announced, and serves the application until the process ends."""
    print(announced, flush=True)
    config = uvicorn.Config(app, log_level="warning", lifespan=lifespan)
    await uvicorn.Server(config).serve(sockets=[listener])
