"""Who asks: tokens, cookies, tickets, and where keys come from."""
