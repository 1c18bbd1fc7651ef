"""The MCP server: other agent programs as agents of a mesh. Thin: parse, store function, result, as the tools do."""
