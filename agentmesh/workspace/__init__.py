"""Operations that join rows and files of workspaces, in the order that a crash cannot break."""
