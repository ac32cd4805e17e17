#!/usr/bin/env bash
# Counts the words of texts, by the library disco.sh. Both stages read, and write, "WORD COUNT" lines.
. "$(dirname "$(readlink -f "$0")")/disco.sh"

words() { tr A-Z a-z | tr -cs a-z '\n' | grep . | sort | uniq -c | awk '{ print $2, $1 }' >>"$out"; }
counts() { cat >>"$out"; }

begin
out=$(mktemp "$stage-$taskid-XXXXXX")
case $stage in
  map*) each_input words ;;
  reduce*) each_input counts ;;
  *) fatal "there is no stage $stage" ;;
esac
awk '{ n[$1] += $2 } END { for (w in n) print w, n[w] }' "$out" | sort >"$out.counts"
rm "$out"
output 0 "$out.counts"
finish
