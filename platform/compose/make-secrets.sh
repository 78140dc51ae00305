#!/bin/sh
# Writes the secrets that docker-compose.yml needs, by default into the folder ./secrets. Keeps
# existing files, so a second run changes nothing. Other users can't enter the folder. The files
# themselves are readable for everyone, because containers read them under their own users.
set -eu
folder=${1:-secrets}
(umask 077 && mkdir -p "$folder")
umask 022

random() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }
write() { [ -s "$folder/$1" ] || printf '%s' "$2" >"$folder/$1"; }

for name in postgres_password forge_owner_password forge_server_password temporal_password; do
  write "$name" "$(random)"
done
for role in forge_owner forge_server; do
  write "${role}_url" "postgres://$role:$(cat "$folder/${role}_password")@postgres:5432/forge"
done
printf 'secrets are in %s\n' "$folder"
