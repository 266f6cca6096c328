#!/usr/bin/env bash
# Removes what setup.sh made: candidates, etcd and its data, and the image. Minikube itself goes on running.
#   --stop     stop Minikube too
#   --keep     keep etcd's data and the image
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
profile=${MINIKUBE_PROFILE:-minikube}
kubectl=(kubectl --context "$profile")
stop=no keep=no
for argument in "$@"; do
  case "$argument" in
    --stop) stop=yes ;;
    --keep) keep=yes ;;
    *) echo "usage: cleanup.sh [--stop] [--keep]" >&2; exit 2 ;;
  esac
done

for tool in minikube kubectl; do
  command -v "$tool" >/dev/null 2>&1 || { echo "cleanup.sh: $tool is not installed" >&2; exit 1; }
done

# The candidates first: they resign while etcd is still there.
"${kubectl[@]}" delete -f "$here/app.yaml" --ignore-not-found --wait --timeout=60s
"${kubectl[@]}" delete -f "$here/etcd.yaml" --ignore-not-found --wait --timeout=60s
if [ "$keep" = no ]; then
  "${kubectl[@]}" delete persistentvolumeclaim/data-etcd-0 --ignore-not-found
  minikube --profile "$profile" image rm leader-election:latest || true
fi
[ "$stop" = no ] || minikube --profile "$profile" stop
echo "Cleaned up."
