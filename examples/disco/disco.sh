# What a worker of Disco needs, in bash: source this file, call "begin", read with "each_input", name
# files with "output", and call "finish".
#
# A worker says NAME SP LENGTH SP JSON NL on its output, and reads one such reply for each message.
# What other programs print would be taken for messages, so the worker speaks on descriptors of its
# own, and what they print goes to a log. It reads JSON as Sluice writes it, without blanks.
export LC_ALL=C # lengths are in bytes
exec 3>&1 4<&0 </dev/null >>"${TMPDIR:-/tmp}/disco-sh-$$.log" 2>&1
trap 'rm -f "${TMPDIR:-/tmp}/disco-sh-$$.log"' EXIT

# ask NAME [JSON] sends a message, and sets $reply and $payload.
ask() {
  local body=${2-'""'}
  printf '%s %d %s\n' "$1" "${#body}" "$body" >&3
  read -r reply length payload <&4 || exit 1
}

# json_text TEXT prints it as JSON.
json_text() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/\\n}
  printf '"%s"' "${text//[$'\001'-$'\037'$'\177'-$'\377']/?}"
}

# error TEXT ends the attempt: another one may end better. No attempt does after fatal TEXT.
error() { ask ERROR "$(json_text "$1")"; exit 1; }
fatal() { ask FATAL "$(json_text "$1")"; exit 1; }

# task KEY prints a value of the task.
task() { sed -E 's/.*"'"$1"'":("([^"]*)"|(-?[0-9]+)).*/\2\3/' <<<"$task"; }

# begin greets the host, and reads the task.
begin() {
  ask WORKER '{"version":"1.1","pid":'$$'}'
  ask TASK
  task=$payload host=$(task host) data=$(task disco_data) port=$(task disco_port) stage=$(task stage) taskid=$(task taskid)
}

# fetch URL prints a replica: a file of this host as a file, all others by HTTP.
fetch() {
  local rest=${1#*://}
  case $1 in
    raw://*) printf %b "${rest//%/\\x}" ;;
    disco://"$host"/*) cat "$data/${rest#"$host"/disco/}" ;;
    disco://*) curl -fsS "http://${rest%%/*}:$port/${rest#*/}" ;;
    *) curl -fsS "$1" ;;
  esac
}

# replicas prints ID URL for each replica in a reply, a line each.
replicas() { grep -oE '\[[0-9]+,"[^"]*"\]' <<<"$1" | sed -E 's/^\[([0-9]+),"(.*)"\]$/\1 \2/'; }

# read_input ID REPLICAS puts an input into a file: the first of its replicas that can be read.
read_input() {
  local id url tried left=$2
  while :; do
    tried=
    while read -r id url; do
      fetch "$url" >"$scratch" && return
      tried+=${tried:+,}$id
    done < <(replicas "$left")
    ask INPUT_ERR "[$1,[$tried]]"
    case $reply in
      FAIL) error "input $1 cannot be read" ;;
      WAIT) sleep "$payload"; ask INPUT "[\"include\",[$1]]" ;;
    esac
    left=$payload
  done
}

# each_input FUNCTION calls it for each input, with the content on its standard input, until no more
# can come.
each_input() {
  local seen= row id rows
  scratch=$(mktemp "in-$stage-$taskid-XXXXXX")
  while :; do
    ask INPUT "[\"exclude\",[$seen]]"
    rows=$payload
    while read -r row; do
      id=${row#\[} id=${id%%,*} seen+=${seen:+,}$id
      read_input "$id" "${row#*\[*\[}"
      "$1" <"$scratch"
    done < <(grep -oE '\[[0-9]+,"(ok|busy|failed)",("all"|[0-9]+),\[(\[[0-9]+,"[^"]*"\],?)*\]\]' <<<"$rows")
    [[ $rows == '["more"'* ]] || break
  done
  rm -f "$scratch"
}

# output LABEL FILE names an output. finish says that the task is done.
output() { sync "$2"; ask OUTPUT "[$1,$(json_text "$2"),$(wc -c <"$2")]"; [[ $reply == OK ]] || exit 1; }
finish() { ask DONE; exit 0; }
