"""What requests of the HTTP service cost, asked as clients ask: over sockets, of a process of its own."""
