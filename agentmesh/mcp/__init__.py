"""The MCP server: other agent programs as agents of a mesh. Thin: parse, call a store function, return the result."""
