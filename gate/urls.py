"""Addresses of the engineers' pages."""

from django.contrib.auth import views as auth
from django.urls import path

from gate import views, views_actions, views_diagnoses, views_ledger, views_panels, views_planning, views_voices

urlpatterns = [
    path("", views.levers, name="levers"),
    path("levers/", views.lever_list, name="lever_list"),
    path("levers/new", views.new, name="new"),
    path("levers/<slug:slug>/", views.lever, name="lever"),
    path("levers/<slug:slug>/status", views.lever_status, name="lever_status"),
    path("levers/<slug:slug>/check-again", views_actions.check_again, name="check_again"),
    path("levers/<slug:slug>/variant", views_actions.link_variant, name="link_variant"),
    path("levers/<slug:slug>/time-root", views_actions.time_root, name="time_root"),
    path("levers/<slug:slug>/looks", views_diagnoses.page, name="diagnoses"),
    path("levers/<slug:slug>/clips.csv", views.clips_csv, name="clips_csv"),
    path("levers/<slug:slug>/votes.csv", views.votes_csv, name="votes_csv"),
    path("levers/<slug:slug>/plan.json", views.plan_json, name="plan_json"),
    path("levers/<slug:slug>/clips/<int:pk>.flac", views.clip, name="clip"),
    path("policy/", views_planning.policy_page, name="policy"),
    path("ledger/", views_ledger.ledger_page, name="ledger"),
    path("plan/", views_planning.plan, name="plan"),
    path("sentences/", views_planning.sentences, name="sentences"),
    path("machine/", views.machine, name="machine"),
    path("invitations/", views_panels.invitations, name="invitations"),
    path("panels/<str:language>/", views_panels.panel, name="panel"),
    path("words/<int:pk>", views_panels.word, name="word"),
    path("words/<int:pk>.flac", views_panels.word_clip, name="word_clip"),
    path("voices/", views_voices.page, name="voices"),
    path("voices/<int:pk>.flac", views_voices.clip, name="voice_clip"),
    path("enter/<str:token>", views.enter, name="enter"),
    path("login/", auth.LoginView.as_view(template_name="gate/login.html"), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("password/", views.password, name="password"),
    path("healthz", views.health, name="health"),
]
