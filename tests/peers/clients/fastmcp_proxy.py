"""FastMCP's proxy before another server, for Toolway's tests: serves on stdin and stdout.

Usage: fastmcp_proxy.py TARGET
"""

from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.server import create_proxy
from tour import target

where = target()
if "url" in where:
    behind = StreamableHttpTransport(where["url"], auth=where["token"])
else:
    behind = StdioTransport(command=where["command"], args=where["args"], env=where["env"])
create_proxy(behind, name="toolway-fastmcp-proxy").run(show_banner=False)
