"""Layout: trees, tables, conversations, JSON. Text of models, tools and people is data here, never markup."""
