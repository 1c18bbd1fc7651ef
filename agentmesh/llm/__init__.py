"""The client for model servers; the engine uses it through the port. Only this package imports openai."""
