from ensue.cli import main

main()
