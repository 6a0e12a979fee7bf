#!/bin/sh
set -e
git clone -q https://api.example.com/shop.git shop
cat shop/answer.json
