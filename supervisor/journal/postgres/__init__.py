"""The journal on a PostgreSQL server: records, fences and reads as those of the file."""
