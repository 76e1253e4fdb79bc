"""Several hosts on one journal: what they tell and ask each other through the database."""
