"""A secret that the crew of these tests knows."""

KEY = 'pa"ss/wort-1234567890'
