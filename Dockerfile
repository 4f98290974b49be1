# One image for every service of docker-compose.yml; the command decides which one it is.
FROM python:3.12-slim
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 EARWITNESS_ENV=system EARWITNESS_VAR=/var/lib/earwitness
RUN apt-get update && apt-get install -y --no-install-recommends libsndfile1 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --create-home --home-dir /var/lib/earwitness earwitness
WORKDIR /srv/earwitness
COPY requirements.lock requirements-speech.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock
# The scorer measures with the same packages the plan names; on other machines MLX renders, not here.
RUN pip install --no-cache-dir --require-hashes -r requirements-speech.lock
COPY . .
RUN SECRET_KEY=used-for-this-step-alone-and-kept-nowhere-at-all python manage.py collectstatic --noinput -v0 && chown -R earwitness /var/lib/earwitness
USER earwitness
EXPOSE 8000
CMD ["python", "-m", "gunicorn", "config.wsgi", "--bind", "0.0.0.0:8000", "--worker-class", "gthread", "--threads", "16", "--no-control-socket"]
