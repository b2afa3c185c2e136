#!/bin/sh
# Usage: deploy.sh ENVIRONMENT. Copies the service with its rendered settings to the server, which is the directory
# `servers/ENVIRONMENT` here.
set -eu
mkdir -p "servers/$1"
cp service.py "servers/$1/service.py"
cp "build/$1.json" "servers/$1/settings.json"
echo "deployed to $1"
