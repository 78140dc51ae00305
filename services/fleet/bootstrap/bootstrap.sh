#!/bin/sh
# Sets up this machine as a Forge worker. Forge runs `sh bootstrap.sh <step>` over SSH, one step after the
# other. Steps are idempotent. Two files in the same directory configure the script: `settings` says what to
# set up, `environment` has the agent's environment variables and is readable by its owner only.
set -eu
umask 077
cd "$(dirname "$0")"

say() { printf '%s\n' "$*"; }
fail() {
  say "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
as_root() {
  # Close descriptor 9, the lock: a service that a package starts would inherit it and hold the lock for ever.
  if [ "$(id -u)" = 0 ]; then
    "$@" 9>&-
  elif has sudo; then
    sudo -n true 2>/dev/null || fail "this needs root: $*; allow $(id -un) to use sudo without a password"
    sudo -n "$@" 9>&-
  else
    fail "this needs root, and there is no sudo: $*"
  fi
}

ACCOUNT=forge-agent

# Wait for the lock: an earlier step may still be running although its SSH connection was lost.
if has flock; then
  exec 9>lock
  flock -w 600 9 || fail "another step has been running for ten minutes"
fi

# shellcheck disable=SC1091
. ./settings
set -a
# shellcheck disable=SC1091
. ./environment
set +a

can_be_root() { [ "$(id -u)" = 0 ] || { has sudo && sudo -n true 2>/dev/null; }; }

# If systemd runs and this user can become root, the agent is a service with its own account. Otherwise it is
# a process of this user. The service's account can't enter this user's home directory, so a service is
# installed outside that directory and uses the system's Python.
if [ -d /run/systemd/system ] && can_be_root; then
  is_service=true
  python_path=/usr/local/bin:/usr/bin:/bin
  case "$(pwd -P)" in
    "$(cd && pwd -P)"/*) installation=/opt/forge-worker/$WORKER_ID ;;
    *) installation=$(pwd) ;;
  esac
else
  is_service=false
  python_path=$PATH
  installation=$(pwd)
fi
python=$installation/venv/bin/python

python_with_venv() {
  for candidate in python3 python3.13 python3.12 python3.11; do
    found=$(
      PATH=$python_path
      command -v "$candidate"
    ) || continue
    if "$found" -c '
import ensurepip, sys, venv
sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      say "$found"
      return
    fi
  done
}

install_packages() {
  say "installing $*"
  if has apt-get; then
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@"
  elif has dnf; then
    as_root dnf install -y -q "$@"
  else
    fail "there is neither apt-get nor dnf to install them with"
  fi
}

# Usage: package <apt-get name> <dnf name>. Prints the name for this machine's package manager.
package() {
  if has apt-get; then say "$1"; else say "$2"; fi
}

step_script() {
  say "$(uname -srm), $(id -un)"
  if [ -r /etc/os-release ]; then
    # shellcheck disable=SC1091
    say "$(. /etc/os-release && printf '%s' "${PRETTY_NAME:-unknown}")"
  fi
  say "disk: $(df -Ph . | awk 'NR==2 {print $4}') free"
  say "python: $(python_with_venv || true)"
  if $is_service; then
    say "agent: a service of the account $ACCOUNT, in $installation"
  else
    say "agent: a process of $(id -un), because there is no systemd, or root needs a password"
  fi
}

step_packages() {
  wanted=""
  [ -n "$(python_with_venv)" ] || wanted="$wanted $(package 'python3 python3-venv python3-pip' python3.11)"
  [ -z "$REPOSITORY" ] || has git || wanted="$wanted git"
  has curl || wanted="$wanted curl"
  has docker || has podman || wanted="$wanted $(package docker.io podman)"
  # shellcheck disable=SC2086
  if [ -n "$wanted" ]; then install_packages $wanted; fi
  [ -n "$(python_with_venv)" ] || fail "Python 3.11 or newer with venv is needed in $python_path, and could not be installed"
  [ -z "$REPOSITORY" ] || has git || fail "git is needed, and could not be installed"
  if [ "$GPU_COUNT" -gt 0 ]; then install_drivers; fi
  say "all system packages are installed"
}

install_drivers() {
  if ! has nvidia-smi; then
    if has ubuntu-drivers; then
      say "installing GPU drivers"
      as_root ubuntu-drivers install --gpgpu
    else
      install_packages "$(package nvidia-driver nvidia-driver-cuda)"
    fi
  fi
  has nvidia-smi || fail "nvidia-smi is missing after the installation of the GPU drivers"
  found=$(nvidia-smi --list-gpus) ||
    fail "the GPU drivers are not loaded yet; reboot the machine, then request the bootstrap again"
  count=$(say "$found" | grep -c .) || true
  [ "$count" -ge "$GPU_COUNT" ] || fail "registered with $GPU_COUNT GPUs, but there are $count"
  say "$found"
}

is_commit() { [ "${#1}" = 40 ] && case "$1" in *[!0-9a-f]*) false ;; esac; }

step_repository() {
  if [ -z "$REPOSITORY" ]; then unpack_repository; else fetch_repository; fi
  for project in compute agent; do
    [ -f "repository/$project/pyproject.toml" ] || fail "the repository has no $project/pyproject.toml"
  done
}

# Without a configured repository, the server sends the agent and handlers of its own release.
unpack_repository() {
  rm -rf repository.part
  mkdir repository.part
  tar --no-same-owner -xzf compute.tgz -C repository.part
  rm -rf repository
  mv repository.part repository
  say "sent by the server, $REPOSITORY_REF"
}

fetch_repository() {
  if [ ! -d repository/.git ]; then
    rm -rf repository
    git init -q repository
  fi
  git -C repository remote remove origin 2>/dev/null || true
  git -C repository remote add origin -- "$REPOSITORY"
  git -C repository fetch -q --depth 1 origin "$REPOSITORY_REF"
  fetched=$(git -C repository rev-parse --verify 'FETCH_HEAD^{commit}')
  # A full commit id should pin every file. But git prefers a branch or tag of that name, which may point to
  # another commit: refuse it.
  if is_commit "$REPOSITORY_REF" && [ "$fetched" != "$REPOSITORY_REF" ]; then
    fail "the repository has $fetched for $REPOSITORY_REF"
  fi
  git -C repository checkout -q --force --detach "$fetched"
  say "at $fetched"
}

revision() { if [ -z "$REPOSITORY" ]; then say "$REPOSITORY_REF"; else git -C repository rev-parse HEAD; fi; }

step_requirements() {
  if $is_service; then open_installation; fi
  install_agent
  if $is_service; then chmod -R go=rX "$installation/venv"; fi
}

open_installation() {
  as_root install -d -m 755 -o "$(id -u)" -g "$(id -g)" "$installation"
  # The agent's account must be able to enter the parent directory. If the agent is installed in this directory,
  # an earlier bootstrap may have created the parent so that only the user of the SSH connection can enter it.
  if [ "$installation" = "$(pwd)" ]; then as_root chmod go+x ..; fi
}

install_agent() {
  if ! [ -x "$python" ] || ! "$python" -c ''; then
    rm -rf "$installation/venv"
    "$(python_with_venv)" -m venv "$installation/venv"
  fi
  handlers=./repository/compute
  # Without a GPU, leave out PyTorch: its CUDA build is a download of 3 GB. The worker then runs only jobs that
  # don't need PyTorch.
  if has nvidia-smi && nvidia-smi >/dev/null 2>&1; then handlers="${handlers}[train]"; fi
  wanted="$(revision) $handlers"
  marker=$installation/venv/.forge-installed
  if [ "$(cat "$marker" 2>/dev/null)" = "$wanted" ]; then
    say "agent and handlers are already installed"
    return
  fi
  rm -f "$marker"
  locks=repository/requirements
  if [ -f $locks/build.txt ] && [ -f $locks/runtime.txt ] && [ -f $locks/train.txt ]; then
    install_locked
  else
    "$python" -m pip install --disable-pip-version-check "$handlers" ./repository/agent
  fi
  say "$wanted" >"$marker"
}

# Installs every dependency by hash. Then installs Forge's packages without build isolation, so that
# pip downloads nothing else.
install_locked() {
  set -- -r "$locks/build.txt" -r "$locks/runtime.txt"
  case "$handlers" in *train*) set -- "$@" -r "$locks/train.txt" ;; esac
  "$python" -m pip install --disable-pip-version-check --require-hashes --no-deps "$@"
  "$python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation \
    ./repository/compute ./repository/agent
}

# Reads the worker's key from standard input, so that the key appears in no process list and no log.
step_agent() {
  IFS= read -r key || fail "no key on standard input"
  require_valid_key
  {
    cat environment
    [ -z "$REPOSITORY" ] || printf 'FORGE_GIT_COMMIT="%s"\n' "$(revision)"
    printf 'SERVICE_API_KEY="%s"\n' "$key"
  } >agent.env.part
  mv agent.env.part agent.env
  if $is_service; then
    start_service
  else
    stop_process
    start_process
  fi
}

# Checks that Forge still accepts the key. A server process that was paused may send the key of an earlier try,
# which a later try has revoked and replaced.
require_valid_key() {
  status=$(
    # Pass the key in a configuration on standard input: an argument would appear in the process list.
    printf 'header = "X-Service-Api-Key: %s"\n' "$key" |
      curl -q --config - --silent --retry 2 --max-time 20 --output /dev/null --write-out '%{http_code}' \
        "${SERVICE_API_URL%/}/api/auth/ping"
  ) || say "this machine can't reach $SERVICE_API_URL"
  [ "$status" != 403 ] || fail "the server refuses this key; the agent keeps the one that it has"
}

# `forge-agent install` creates the unit and the account.
start_service() {
  unit=forge-agent-$WORKER_ID
  # -B: write no bytecode. Below, root runs this Python, and the SSH user could not remove root's
  # files later.
  help=$("$python" -B -m forge_agent install --help)
  case $help in *--env-file*) ;; *)
    fail "the agent of $(revision) is too old for this server: set FORGE_COMPUTE_REF to a newer one" ;;
  esac
  # Kill the agent if it does not stop within 10 s: after SIGTERM it would first finish a running job.
  as_root timeout 10 systemctl stop "$unit.service" 2>/dev/null ||
    as_root systemctl kill --signal=KILL "$unit.service" 2>/dev/null || true
  stop_process
  state=${FORGE_AGENT_STATE:-$installation/state}
  # Earlier releases kept the state here, owned by this user.
  if [ -d state ] && ! [ -e "$state" ]; then as_root mv state "$state"; fi
  as_root "$python" -B -m forge_agent install --name "$unit" --user "$ACCOUNT" \
    --env-file "$(pwd)/agent.env" --state-dir "$state"
  rm -rf run-agent.sh agent.log
  if [ "$installation" != "$(pwd)" ]; then rm -rf venv; fi
  sleep 3
  if ! as_root systemctl is-active --quiet "$unit.service"; then
    as_root journalctl -u "$unit.service" -n 20 --no-pager
    fail "the agent ended right after its start"
  fi
  say "the agent runs as $unit.service"
}

# Stops a process that an earlier bootstrap started.
stop_process() {
  if [ -f agent.pid ] && old=$(cat agent.pid) && grep -q forge_agent "/proc/$old/cmdline" 2>/dev/null; then
    say "stopping the running agent ($old)"
    kill "$old"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      kill -0 "$old" 2>/dev/null || break
      sleep 1
    done
    kill -9 "$old" 2>/dev/null || true
  fi
  rm -f agent.pid
}

start_process() {
  write_runner
  nohup setsid sh ./run-agent.sh >>agent.log 2>&1 </dev/null 9>&- &
  sleep 3
  pid=$(cat agent.pid 2>/dev/null || true)
  if [ -z "$pid" ] || ! kill -0 "$pid" 2>/dev/null; then
    tail -n 20 agent.log
    fail "the agent ended right after its start"
  fi
  say "the agent runs as process $pid of $(id -un)"
}

# Prints the end of the agent's log. Forge runs this step if the agent sends no heartbeat.
step_agent_log() {
  if [ -f agent.log ]; then
    tail -n 20 agent.log
  elif has journalctl; then
    as_root journalctl -u "forge-agent-$WORKER_ID.service" -n 20 --no-pager
  fi
}

write_runner() {
  # shellcheck disable=SC2016
  {
    say 'cd "$(dirname "$0")"'
    say 'set -a'
    say '. ./agent.env'
    say ': "${FORGE_AGENT_STATE:=$PWD/state}"'
    say 'set +a'
    say 'echo $$ >agent.pid'
    say 'exec venv/bin/python -m forge_agent'
  } >run-agent.sh
}

case "${1:-}" in
  script | packages | repository | requirements | agent | agent_log) "step_$1" ;;
  *) fail "usage: bootstrap.sh script | packages | repository | requirements | agent | agent_log" ;;
esac
