"""The formats that clients speak: each module has its requests, its answers, its errors and its endpoints."""
