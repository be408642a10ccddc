# The test of the boiler, as the caretaker left it.
echo "water 61 degrees"
echo "last service 2024" >> boiler.log
