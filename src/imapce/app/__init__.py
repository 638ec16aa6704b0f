"""The browser page over one `Exploration`: it draws, asks and shows; all logic is the library's.

    imapce app rows.csv            # in a browser
    Exploration(X).app()           # in a notebook

`conversation` talks about one exploration and knows no transport; `server` carries its messages over a WebSocket,
`widget` over a notebook's comm. The page itself is in `static/` and, where reports use it too, in `plotting/static/`.
"""
