"""Our asyncio client: connections, admin, producer, consumer."""
