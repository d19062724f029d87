"""Doors to the outside: command line, HTTP, console, MCP, LangGraph."""
