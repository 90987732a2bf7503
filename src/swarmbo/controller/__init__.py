"""Controllers: networks, and the JSON form in which people exchange them."""
