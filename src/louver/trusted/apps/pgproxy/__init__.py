"""The front door: clients of PostgreSQL are served by their own protocol (`louver serve pg`)."""
