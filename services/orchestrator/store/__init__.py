"""What Postgres holds: migrations, the pool, and one module of SQL per aggregate."""
