# Counts requests, errors and bytes of one log file, and writes them as JSON to the file that a task's output is read from.
{ requests++; bytes += $10; if ($9 >= 500) errors++ }
END {
  printf "{\"requests\": %d, \"errors\": %d, \"bytes\": %d}\n", requests, errors, bytes > ENVIRON["SLUICE_OUTPUT"]
  printf "%s: %d requests, %d errors\n", FILENAME, requests, errors
}
