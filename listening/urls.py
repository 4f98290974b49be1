"""Addresses under /listen/."""

from django.urls import path

from listening import views

app_name = "listening"
urlpatterns = [
    path("", views.home, name="home"),
    path("go/<str:token>/", views.welcome, name="welcome"),
    path("check/", views.check, name="check"),
    path("check/sound", views.check_sound, name="check_sound"),
    path("test/", views.test, name="test"),
    path("next", views.following, name="next"),
    path("sound/<str:key>", views.sound, name="sound"),
    path("vote", views.vote, name="vote"),
    path("thanks/", views.thanks, name="thanks"),
]
