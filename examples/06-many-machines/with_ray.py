#!/usr/bin/env python3
"""Patches and metrics of prompts.jsonl on a Ray cluster, or on this machine where there is none.

  with_ray.py MODEL prompts.jsonl records.parquet [WORKERS]
"""
import sys

import ray.data

import ctxc.ray

model, prompts, records = sys.argv[1:4]
workers = int(sys.argv[4]) if len(sys.argv) > 4 else 2
rows = ray.data.read_json(prompts, lines=True)
made = ctxc.ray.patches(rows, model, make=["patch", "metrics"], concurrency=(1, workers))
made.write_parquet(records)
