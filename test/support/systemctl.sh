#!/bin/sh
# A stand-in for systemctl. Starts, stops and checks services. Reads only those settings of a unit
# that define the program, its user and its environment. Keeps its files in its own folder.
set -eu
here=$(dirname "$0")
for unit; do :; done
file=/etc/systemd/system/$unit
pid_file=$here/$unit.pid

setting() { sed -n "s/^$1=-\{0,1\}//p" "$file"; }
is_active() { [ -f "$pid_file" ] && kill -0 "$(cat "$pid_file")" 2>/dev/null; }

start() {
  user=$(setting User)
  groups=$(setting SupplementaryGroups | tr ' ' ,)
  # As in systemd, root reads the environment file. Then setpriv changes to the unit's user.
  # shellcheck disable=SC2016
  env -i PATH="$PATH" HOME="$(getent passwd "$user" | cut -d: -f6)" sh -c '
    set -a
    for variable in $1; do eval "$variable"; done
    if [ -n "$2" ]; then . "$2"; fi
    set +a
    shift 2
    umask 077
    cd /
    exec setsid setpriv "$@"
  ' - "$(setting Environment)" "$(setting EnvironmentFile)" \
    --reuid "$user" --regid "$(id -g "$user")" "--groups=${groups:-$(id -g "$user")}" \
    sh -c "exec $(setting ExecStart)" >>"$here/$unit.log" 2>&1 </dev/null &
  echo $! >"$pid_file"
}

end() {
  is_active || exit 5
  kill "-$1" "$(cat "$pid_file")"
  while is_active; do sleep 0.1; done
}

case "$1" in
  daemon-reload) ;;
  enable) is_active || start ;;
  stop) end TERM ;;
  kill) end KILL ;;
  is-active) is_active ;;
  *) exit 1 ;;
esac
