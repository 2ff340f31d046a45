# The image of the scheduler: bayplan and what it needs, nothing else, as a user without rights. Packages have the versions
# of constraints.txt; /opt/bayplan/components.cdx.json lists what is installed (CycloneDX).
#   docker build -t bayplan:0.1.0 .
#   docker build -t mine:1 --build-arg PLUGINS="my-plugin==1.0" .      # with plugins from packages
#   docker build --build-arg PYTHON=python@sha256:… .                  # on exactly this image
ARG PYTHON=python:3.13.5-slim-bookworm
FROM ${PYTHON} AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
ARG PLUGINS=""
RUN python -m venv /opt/bayplan \
    && /opt/bayplan/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt . ${PLUGINS} \
    && /opt/bayplan/bin/python -m bayplan.deploy.components > /opt/bayplan/components.cdx.json \
    && /opt/bayplan/bin/python -m compileall -q /opt/bayplan/lib

FROM ${PYTHON}
RUN groupadd --gid 65532 bayplan && useradd --uid 65532 --gid 65532 --no-create-home --shell /usr/sbin/nologin bayplan
COPY --from=build /opt/bayplan /opt/bayplan
RUN ln -s /opt/bayplan/bin/bayplan /bin/kube-scheduler
ENV PATH=/opt/bayplan/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["bayplan"]
CMD ["run", "--bind-address=0.0.0.0"]
