#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# usage: program.sh PROGRAM
# Runs a program that is built only where the headers of CUDA 12's libraries are.
[ -x "$1" ] || {
	echo "the headers of CUDA 12's libraries could not be fetched (scripts/cuda-wheels libraries-12.9)"
	exit 77
}
exec "$1"
