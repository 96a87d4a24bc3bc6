# The API and the workers in one image; Redis is elsewhere:
#
#   docker build -t reattach .
#   docker run --network host -e REATTACH_REDIS=redis://127.0.0.1:6379/0 reattach                                   the API
#   docker run --network host -e REATTACH_REDIS=redis://127.0.0.1:6379/0 reattach work reattach.demo.agents:agents   a worker
#
# The host's network, since without configured authentication the API serves loopback addresses only.
FROM python:3.13-slim AS build
WORKDIR /src
RUN ["python", "-m", "venv", "--without-pip", "/opt/reattach"]
COPY pyproject.toml LICENSE README.md ./
COPY lua lua
COPY service service
RUN ["python", "-m", "pip", "--python", "/opt/reattach/bin/python", "install", "--no-cache-dir", "."]

FROM python:3.13-slim
COPY --from=build /opt/reattach /opt/reattach
RUN ["useradd", "--uid", "10001", "--user-group", "--create-home", "reattach"]
WORKDIR /home/reattach
USER 10001:10001
ENV PATH=/opt/reattach/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f\"http://127.0.0.1:{os.environ.get('REATTACH_PORT', '8080')}/healthz\", timeout=3)"]
ENTRYPOINT ["reattach"]
CMD ["serve"]
