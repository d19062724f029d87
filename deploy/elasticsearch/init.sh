#!/usr/bin/env bash
# Make the role and the user of Threefold on an Elasticsearch that has security on, and set the user's
# password. Repeatable: it brings what is there up to date, and is also how the password is changed.
#
#   ELASTICSEARCH_URL=https://… ELASTIC_PASSWORD=… ELASTICSEARCH_PASSWORD=… deploy/elasticsearch/init.sh
#
# Needs bash and curl. The indices are those that elasticsearch_prefix names by default; change the names
# in role.json with it.
#
#   ELASTIC_PASSWORD         of the user `elastic`, who may make users
#   ELASTICSEARCH_PASSWORD   of the user `threefold`: letters, digits, - and _, at least six
#   ELASTICSEARCH_CA         file of the certificate authority; default: the system's
#   ROLE                     the role's file; default: role.json beside this script
set -euo pipefail

: "${ELASTICSEARCH_URL:?address of a node}"
: "${ELASTIC_PASSWORD:?password of the user elastic}"
: "${ELASTICSEARCH_PASSWORD:?password of the user threefold}"
role=${ROLE:-$(dirname "${BASH_SOURCE[0]}")/role.json}

if [[ ! $ELASTICSEARCH_PASSWORD =~ ^[A-Za-z0-9_-]{6,}$ ]]; then
  echo "ELASTICSEARCH_PASSWORD: letters, digits, - and _, at least six" >&2
  exit 2
fi

put() { # PATH, body on standard input
  # curl reads the password from a file: arguments can be seen by every user of a machine.
  local quoted=${ELASTIC_PASSWORD//\\/\\\\}
  curl --silent --show-error --fail-with-body --output /dev/stderr --request PUT \
    --config <(printf 'user = "elastic:%s"\n' "${quoted//\"/\\\"}") \
    ${ELASTICSEARCH_CA:+--cacert "$ELASTICSEARCH_CA"} \
    --header 'Content-Type: application/json' --data-binary @- "${ELASTICSEARCH_URL%/}/$1"
}

put _security/role/threefold <"$role"
put _security/user/threefold <<<"{\"password\": \"$ELASTICSEARCH_PASSWORD\", \"roles\": [\"threefold\"]}"
echo >&2
echo "the role and the user threefold are ready"
